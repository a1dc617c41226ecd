package router

import (
	"context"
	"fmt"
	"sync"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/services/router/internal/workers"
)

// zygoteAdmin is ZygoteService for the workers that the router knows: each question
// goes to the one that it names, or to all.
type zygoteAdmin struct{ *Service }

// listTimeout bounds a worker's answer to what shows, not does.
const listTimeout = 5 * time.Second

// ask puts a question to workers at once, and returns their answers by worker id. An
// error of any is the error of all, since half of an instruction would go unnoticed.
// Errors: errToken, errUnknownWorker, a worker's own.
func ask[Res any](ctx context.Context, z *zygoteAdmin, worker string, question func(context.Context, hearthv1connect.ZygoteServiceClient) (Res, error)) ([]Res, error) {
	if err := checkToken(ctx, z.cfg.Token); err != nil {
		return nil, err
	}
	var names, uris []string
	for _, v := range z.cluster.Workers() {
		if v.URI != "" && (worker == "" || worker == v.ID) {
			names, uris = append(names, v.ID), append(uris, v.URI)
		}
	}
	if worker != "" && len(uris) == 0 {
		return nil, publicly(errUnknownWorker, "no worker %q has registered: `hearth worker list` shows those that have", worker)
	}
	answers, errs := make([]Res, len(uris)), make([]error, len(uris))
	var wait sync.WaitGroup
	for i, uri := range uris {
		wait.Go(func() {
			client, err := z.workers.Zygotes(uri)
			if err == nil {
				answers[i], err = question(ctx, client)
			}
			errs[i] = err
		})
	}
	wait.Wait()
	for i, err := range errs {
		if workers.Verdict(err) {
			return nil, &verdict{err}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errUnreachable, names[i], err)
		}
	}
	return answers, nil
}

func (z *zygoteAdmin) ListZygotes(ctx context.Context, req *hearthv1.ListZygotesRequest) (*hearthv1.ListZygotesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers, err := ask(ctx, z, req.GetWorkerId(), func(ctx context.Context, c hearthv1connect.ZygoteServiceClient) (*hearthv1.ListZygotesResponse, error) {
		return c.ListZygotes(ctx, &hearthv1.ListZygotesRequest{})
	})
	if err != nil {
		return nil, atEdge(err, nil)
	}
	res := &hearthv1.ListZygotesResponse{}
	for _, a := range answers {
		res.Zygotes, res.Usage = append(res.Zygotes, a.GetZygotes()...), append(res.Usage, a.GetUsage()...)
	}
	return res, nil
}

func (z *zygoteAdmin) PinZygote(ctx context.Context, req *hearthv1.PinZygoteRequest) (*hearthv1.PinZygoteResponse, error) {
	answers, err := ask(ctx, z, req.GetWorkerId(), func(ctx context.Context, c hearthv1connect.ZygoteServiceClient) (*hearthv1.PinZygoteResponse, error) {
		return c.PinZygote(ctx, &hearthv1.PinZygoteRequest{Modules: req.GetModules()})
	})
	if err != nil {
		return nil, atEdge(err, nil)
	}
	return &hearthv1.PinZygoteResponse{Zygotes: joined(answers)}, nil
}

func (z *zygoteAdmin) UnpinZygote(ctx context.Context, req *hearthv1.UnpinZygoteRequest) (*hearthv1.UnpinZygoteResponse, error) {
	answers, err := ask(ctx, z, req.GetWorkerId(), func(ctx context.Context, c hearthv1connect.ZygoteServiceClient) (*hearthv1.UnpinZygoteResponse, error) {
		return c.UnpinZygote(ctx, &hearthv1.UnpinZygoteRequest{Modules: req.GetModules()})
	})
	if err != nil {
		return nil, atEdge(err, nil)
	}
	return &hearthv1.UnpinZygoteResponse{Zygotes: joined(answers)}, nil
}

func (z *zygoteAdmin) WarmZygote(ctx context.Context, req *hearthv1.WarmZygoteRequest) (*hearthv1.WarmZygoteResponse, error) {
	answers, err := ask(ctx, z, req.GetWorkerId(), func(ctx context.Context, c hearthv1connect.ZygoteServiceClient) (*hearthv1.WarmZygoteResponse, error) {
		return c.WarmZygote(ctx, &hearthv1.WarmZygoteRequest{Modules: req.GetModules()})
	})
	if err != nil {
		return nil, atEdge(err, nil)
	}
	return &hearthv1.WarmZygoteResponse{Zygotes: joined(answers)}, nil
}

func joined[A interface{ GetZygotes() []*hearthv1.Zygote }](answers []A) []*hearthv1.Zygote {
	var all []*hearthv1.Zygote
	for _, a := range answers {
		all = append(all, a.GetZygotes()...)
	}
	return all
}
