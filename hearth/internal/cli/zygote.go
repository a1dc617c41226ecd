package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/hearth/internal/output"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

type zygoteCmds struct {
	List  zygoteListCmd  `cmd:"" help:"List the imports that workers keep warm, and how calls came to their containers."`
	Pin   zygotePinCmd   `cmd:"" help:"Keep imports warm until the worker stops."`
	Unpin zygoteUnpinCmd `cmd:"" help:"End a pin."`
	Warm  zygoteWarmCmd  `cmd:"" help:"Do imports ahead now, and say when they are done."`
}

// zygoteFlags lead to the zygotes of one worker or all.
type zygoteFlags struct {
	Worker string `help:"Worker that is meant; empty: every one." placeholder:"ID"`
	routerFlags
	outputFlag
}

func (f zygoteFlags) zygotes() (hearthv1connect.ZygoteServiceClient, func(), error) {
	dialer := dial.New(nil)
	client, err := dialer.Client(f.Router)
	if err != nil {
		return nil, nil, usagef("--router: %w", err)
	}
	return hearthv1connect.NewZygoteServiceClient(client), dialer.Close, nil
}

var zygoteView = output.View[*hearthv1.Zygote]{
	Columns: []string{"ZYGOTE", "WORKER", "STATE", "MODULES", "PARENT", "PRIVATE", "IMPORTS", "READY", "CALLS/S", "FORKED", "FOUND READY", "REASON"},
	Row: func(z *hearthv1.Zygote) []string {
		state := strings.TrimPrefix(z.GetState().String(), "ZYGOTE_STATE_")
		if z.GetState() == hearthv1.ZygoteState_ZYGOTE_STATE_UNSPECIFIED {
			state = "WAITING"
		}
		if z.GetPinned() {
			state += ",PINNED"
		}
		return []string{
			z.GetZygoteId(), z.GetWorkerId(), state, strings.Join(z.GetModules(), ","), z.GetParentId(), mebibytes(z.GetPrivateBytes()),
			z.GetImportTime().AsDuration().Round(time.Millisecond).String(), fmt.Sprintf("%d/%d", z.GetPooled(), z.GetPoolTarget()),
			fmt.Sprintf("%.1f", z.GetCallsPerSecond()), fmt.Sprint(z.GetForked()), fmt.Sprint(z.GetFoundReady()), z.GetReason(),
		}
	},
	Name: (*hearthv1.Zygote).GetZygoteId,
}

type zygoteListCmd struct{ zygoteFlags }

func (c *zygoteListCmd) Run(ctx context.Context, shell *Shell) error {
	zygotes, done, err := c.zygotes()
	if err != nil {
		return err
	}
	defer done()
	res, err := zygotes.ListZygotes(ctx, &hearthv1.ListZygotesRequest{WorkerId: c.Worker})
	if err != nil {
		return fmt.Errorf("list zygotes: %w", err)
	}
	if c.Output == output.JSON || c.Output == output.YAML {
		return output.Message(shell.Out, c.Output, res)
	}
	if err := output.List(shell.Out, c.Output, zygoteView, res.GetZygotes()); err != nil || c.Output == output.Name {
		return err
	}
	for _, u := range res.GetUsage() {
		fmt.Fprintf(shell.Out, "\nworker %s: %s of %s used; calls %s\n", u.GetWorkerId(), mebibytes(u.GetUsedBytes()), mebibytes(u.GetBudgetBytes()), shares(u.GetStarts()))
	}
	return nil
}

// shares says how calls came to their containers, each with its part of all.
func shares(c *hearthv1.StartCounts) string {
	all := c.GetCold() + c.GetCheckpoint() + c.GetPooled() + c.GetSession()
	part := func(name string, n int64) string {
		return fmt.Sprintf("%s %d (%.0f %%)", name, n, 100*float64(n)/float64(max(all, 1)))
	}
	return strings.Join([]string{
		part("cold", c.GetCold()), part("from a zygote", c.GetCheckpoint()), part("found ready", c.GetPooled()), part("in their session", c.GetSession()),
	}, ", ")
}

// zygoteModules are a set of imports, as "pandas,numpy" or apart.
type zygoteModules struct {
	Modules []string `arg:"" help:"Top-level modules of one set."`
	zygoteFlags
}

func (m zygoteModules) set() []string {
	var names []string
	for _, arg := range m.Modules {
		names = append(names, strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

type zygotePinCmd struct{ zygoteModules }

func (c *zygotePinCmd) Run(ctx context.Context, shell *Shell) error {
	zygotes, done, err := c.zygotes()
	if err != nil {
		return err
	}
	defer done()
	res, err := zygotes.PinZygote(ctx, &hearthv1.PinZygoteRequest{WorkerId: c.Worker, Modules: c.set()})
	if err != nil {
		return fmt.Errorf("pin zygote: %w", err)
	}
	return output.List(shell.Out, c.Output, zygoteView, res.GetZygotes())
}

type zygoteUnpinCmd struct{ zygoteModules }

func (c *zygoteUnpinCmd) Run(ctx context.Context, shell *Shell) error {
	zygotes, done, err := c.zygotes()
	if err != nil {
		return err
	}
	defer done()
	res, err := zygotes.UnpinZygote(ctx, &hearthv1.UnpinZygoteRequest{WorkerId: c.Worker, Modules: c.set()})
	if err != nil {
		return fmt.Errorf("unpin zygote: %w", err)
	}
	return output.List(shell.Out, c.Output, zygoteView, res.GetZygotes())
}

type zygoteWarmCmd struct {
	zygoteModules
	Timeout time.Duration `help:"Time for the imports; then the exit code is 124." default:"5m"`
}

func (c *zygoteWarmCmd) Run(ctx context.Context, shell *Shell) error {
	zygotes, done, err := c.zygotes()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	res, err := zygotes.WarmZygote(ctx, &hearthv1.WarmZygoteRequest{WorkerId: c.Worker, Modules: c.set()})
	if err != nil {
		return ofCall(ctx, "warm zygote", c.Timeout, err)
	}
	return output.List(shell.Out, c.Output, zygoteView, res.GetZygotes())
}
