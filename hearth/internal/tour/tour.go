package tour

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Guide takes a reader through the stops.
type Guide struct {
	Out io.Writer
	// HTTP calls functions at the gateway; Gateway and ControlPlane are URLs.
	HTTP                  *http.Client
	Gateway, ControlPlane string
	// Create makes a Run and returns once it is ready.
	Create func(context.Context, Stop) (*hearthv1.Run, error)

	wrong int
}

// Walk goes through every stop and returns how many answers were wrong.
// Errors: a Run could not be created, or a call got no answer at all.
func (g *Guide) Walk(ctx context.Context, stops []Stop) (wrong int, err error) {
	for i, stop := range stops {
		if err := g.visit(ctx, i+1, stop); err != nil {
			return g.wrong, fmt.Errorf("%s: %w", stop.Name, err)
		}
	}
	return g.wrong, nil
}

func (g *Guide) visit(ctx context.Context, number int, stop Stop) error {
	fmt.Fprintf(g.Out, "\n%d. %s (%s): %s\n", number, stop.Name, stop.Runtime, stop.Shows)
	start := time.Now()
	run, err := g.Create(ctx, stop)
	if err != nil {
		return err
	}
	took := time.Since(start)
	fmt.Fprintf(g.Out, "   created and %s in %s\n", strings.ToLower(strings.TrimPrefix(run.GetStatus().GetPhase().String(), "RUN_PHASE_")), short(took))
	fmt.Fprintf(g.Out, "     hearth run create %s --runtime %s --handler %s --source examples/%s --wait --control-plane %s\n",
		stop.Name, stop.Runtime, stop.Handler, stop.Folder, g.ControlPlane)
	var last time.Duration
	for n, call := range stop.Calls {
		if last, err = g.call(ctx, stop.Name, n+1, call); err != nil {
			return err
		}
	}
	if stop.Warm && last > 0 {
		fmt.Fprintf(g.Out, "   call %d was %.0f times faster than the start\n", len(stop.Calls), float64(took)/float64(last))
	}
	return nil
}

// call makes one call over HTTP and prints it with the line that repeats it.
func (g *Guide) call(ctx context.Context, name string, number int, call Call) (time.Duration, error) {
	url := g.Gateway + "/v1/namespaces/default/runs/" + name + ":invoke"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(call.Payload))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	start := time.Now()
	res, err := g.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	took := time.Since(start)
	fmt.Fprintf(g.Out, "   call %d: %d in %s  %s\n", number, res.StatusCode, short(took), show(body))
	fmt.Fprintf(g.Out, "     %s\n", curl(url, call.Payload))
	g.judge(call, res.StatusCode, body)
	return took, nil
}

func (g *Guide) judge(call Call, status int, body []byte) {
	err := call.Right(body)
	if status != call.Status {
		err = fmt.Errorf("want status %d", call.Status)
	}
	if err != nil {
		g.wrong++
		fmt.Fprintf(g.Out, "   WRONG: %v\n", err)
	}
}

// curl is the line that makes the same call.
func curl(url, payload string) string {
	return "curl -s '" + url + "' -H 'content-type: application/json' -d '" + strings.ReplaceAll(payload, "'", `'\''`) + "'"
}

// widest is how much of an answer is shown.
const widest = 100

// show is an answer on one line: text as it is, everything else quoted.
func show(body []byte) string {
	text := strings.TrimRight(string(body), "\n")
	if quoted := fmt.Sprintf("%q", text); strings.ContainsAny(quoted, "\\") && !strings.HasPrefix(text, "{") && !strings.Contains(text, `"`) {
		text = quoted
	}
	if cut := []rune(text); len(cut) > widest {
		text = string(cut[:widest]) + "…"
	}
	return text
}

// short rounds a time for people: three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
