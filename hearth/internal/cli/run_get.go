package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

type runGetCmd struct {
	Name string `arg:"" help:"Name of the Run."`
	namespaceFlag
	outputFlag
	controlFlags
}

func (c *runGetCmd) Run(ctx context.Context, shell *Shell) error {
	clients, err := c.dial()
	if err != nil {
		return err
	}
	defer clients.close()
	res, err := clients.runs.GetRun(ctx, &hearthv1.GetRunRequest{Namespace: c.Namespace, Name: c.Name})
	if err != nil {
		return fmt.Errorf("get Run %s: %w", c.Name, err)
	}
	if c.Output == output.Table {
		return describe(shell.Out, res.GetRun())
	}
	return output.One(shell.Out, c.Output, runView(), res.GetRun())
}

// describe prints one Run, a fact a line; empty facts are left out.
func describe(w io.Writer, r *hearthv1.Run) error {
	status, spec := r.GetStatus(), r.GetSpec()
	rows := [][]string{
		{"Name:", r.GetNamespace() + "/" + r.GetName()},
		{"UID:", r.GetUid()},
		{"Labels:", pairs(r.GetLabels())},
		{"Runtime:", spec.GetRuntime()},
		{"Mode:", mode(spec)},
		{"Handler:", spec.GetFunction().GetHandler()},
		{"Entrypoint:", spec.GetTask().GetEntrypoint()},
		{"Arguments:", arguments(spec.GetTask().GetArgs())},
		{"Phase:", phase(r)},
		{"Reason:", reason(r)},
		{"Message:", status.GetMessage()},
		{"Attempt:", fmt.Sprint(status.GetAttempt())},
		{"Node:", status.GetNodeUid()},
		{"Source:", status.GetSourceIdentity()},
		{"Created:", moment(r.GetCreateTime())},
		{"Scheduled:", moment(status.GetScheduleTime())},
		{"Started:", moment(status.GetStartTime())},
		{"Ready:", moment(status.GetReadyTime())},
		{"Finished:", moment(status.GetFinishTime())},
		{"Exit code:", exitCode(status)},
		{"Outputs:", pairs(status.GetOutputs())},
	}
	if err := output.Rows(w, nil, slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })); err != nil {
		return err
	}
	return errors.Join(section(w, "Standard output:", status.GetStdout()), section(w, "Standard error:", status.GetStderr()))
}

// section prints what a task wrote, as it is.
func section(w io.Writer, title, text string) error {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s", title, text)
	return err
}

func exitCode(s *hearthv1.RunStatus) string {
	if s.ExitCode == nil {
		return ""
	}
	return fmt.Sprint(s.GetExitCode())
}

// arguments are a task's, each as a shell would read it.
func arguments(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = quote(arg)
	}
	return strings.ReplaceAll(strings.Join(words, " "), "\n", `\n`)
}

func pairs(m map[string]string) string {
	list := make([]string, 0, len(m))
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format(time.RFC3339Nano)
}
