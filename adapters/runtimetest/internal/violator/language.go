package violator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// load plays a load and returns why it failed, or "".
func load(ctx context.Context, g *registration, handler string) string {
	r := g.r
	file, name, _ := strings.Cut(handler, ".")
	g.instance = instance{name: name}
	text, err := os.ReadFile(filepath.Join(g.dir, file+".fake"))
	if err != nil {
		return "" // a handler that a switch let through
	}
	for line := range strings.Lines(string(text)) {
		kind, ok := strings.CutPrefix(strings.TrimSpace(line), "load ")
		if !ok {
			continue
		}
		switch kind {
		case "count":
			touch(g.dir, "loads", "load\n")
		case "slow":
			touch(g.dir, "load-started", "")
			err = waitFor(ctx, g.dir, "load-release")
		case "hang":
			r.spawn(g, g.env["TOKEN"], ofLoad)
			touch(g.dir, "load-started", "")
			<-ctx.Done()
			err = context.Cause(ctx)
		case "raise":
			return strings.Repeat("é", 5000)
		case "exit":
			return "exit status 3"
		case "daemon":
			r.spawn(g, g.env["TOKEN"], ofLoad)
			if r.is("daemon-holds-load") {
				<-ctx.Done()
				err = context.Cause(ctx)
			}
		case "loud":
			g.instance.printed = "LOUD"
		}
		if err != nil {
			return err.Error()
		}
	}
	return ""
}

type behaviour func(context.Context, *call) ([]byte, error)

// behaviours are the functions of the fake's language.
func behaviours() map[string]behaviour {
	return map[string]behaviour{
		"echo":     func(_ context.Context, c *call) ([]byte, error) { return c.input, nil },
		"hold":     hold,
		"stubborn": stubborn,
		"children": children,
		"leak":     leak,
		"late":     func(context.Context, *call) ([]byte, error) { return []byte(`"early"`), nil },
		"tally":    tally,
		"guard":    guard,
		"counter":  counter,
		"fail":     func(context.Context, *call) ([]byte, error) { return nil, &failure{kind: "Fixture", text: "it failed"} },
		"exit": func(context.Context, *call) ([]byte, error) {
			return nil, &failure{kind: "exit", text: "it ended", exit: "3"}
		},
		"size":        size,
		"unencodable": unencodable,
		"json":        func(context.Context, *call) ([]byte, error) { return []byte("{\"a\": 1}\n"), nil },
		"text":        func(context.Context, *call) ([]byte, error) { return []byte("h\xc3\xa9\n"), nil },
		"binary":      func(context.Context, *call) ([]byte, error) { return []byte("\xff\x00\n"), nil },
		"noise":       noise,
		"outputs":     outputs,
		"env":         env,
		"environ":     environ,
		"context":     withContext,
	}
}

func hold(ctx context.Context, c *call) ([]byte, error) {
	r := c.g.r
	tag := c.text()
	c.touch("started-" + tag)
	err := waitFor(ctx, c.g.dir, "release-"+tag)
	if err != nil {
		if r.is("cancel-lets-handler-run") {
			r.background(func() {
				if waitFor(r.ctx, c.g.dir, "release-"+tag) == nil {
					c.touch("ended-" + tag)
				}
			})
		}
		return nil, err
	}
	c.touch("ended-" + tag)
	return c.input, nil
}

func stubborn(ctx context.Context, c *call) ([]byte, error) {
	if c.g.r.is("term-only") {
		ctx = c.g.r.ctx
	}
	return hold(ctx, c)
}

func children(ctx context.Context, c *call) ([]byte, error) {
	c.g.r.spawn(c.g, c.text(), ofCall)
	c.touch("started-" + c.text())
	<-ctx.Done()
	return nil, ctx.Err()
}

func leak(ctx context.Context, c *call) ([]byte, error) {
	c.g.r.spawn(c.g, c.text(), leaked)
	if c.g.r.is("leak-holds-call") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []byte(`"leaked"`), nil
}

func tally(_ context.Context, c *call) ([]byte, error) {
	dir := c.g.dir
	if c.g.r.is("wrong-dir") {
		dir = filepath.Dir(dir)
	}
	touch(dir, "calls", "call\n")
	return c.input, nil
}

func guard(ctx context.Context, c *call) ([]byte, error) {
	dir := filepath.Join(c.g.dir, "guard")
	if os.Mkdir(dir, 0o777) != nil {
		return []byte(`"overlap"`), nil
	}
	c.g.r.await(ctx, 5*time.Millisecond)
	if err := os.Remove(dir); err != nil {
		return nil, err
	}
	return []byte(`"alone"`), nil
}

func counter(_ context.Context, c *call) ([]byte, error) {
	if !c.g.r.is("state-dies") || c.g.instance.called == 0 {
		c.g.instance.called++
	}
	return strconv.AppendInt(nil, int64(c.g.instance.called), 10), nil
}

func size(_ context.Context, c *call) ([]byte, error) {
	n, err := strconv.Atoi(c.text())
	if err != nil {
		return nil, err
	}
	return []byte(`"` + strings.Repeat("a", n-2) + `"`), nil
}

func unencodable(_ context.Context, c *call) ([]byte, error) {
	if c.g.r.is("encodes-nan") {
		return []byte("NaN"), nil
	}
	return nil, &failure{kind: "Unencodable", text: "JSON cannot carry it"}
}

func noise(_ context.Context, c *call) ([]byte, error) {
	c.g.instance.printed = "noise"
	return []byte(`"quiet"`), nil
}

func outputs(_ context.Context, c *call) ([]byte, error) {
	var count, key, value int
	if _, err := fmt.Sscan(c.text(), &count, &key, &value); err != nil {
		return nil, err
	}
	for i := range count {
		name := fmt.Sprintf("k%0*d", max(key-1, 1), i)[:key]
		c.outputs[name] = strings.Repeat("v", value)
	}
	return []byte(`"set"`), nil
}

func env(_ context.Context, c *call) ([]byte, error) {
	value, given := c.g.env[c.text()]
	switch {
	case c.g.r.is("drops-env"):
		value = ""
	case given:
	case !c.g.r.is("no-path"):
		value = map[string]string{"PATH": "/bin", "HOME": "/", "LANG": "C"}[c.text()]
	}
	return json.Marshal(value)
}

func environ(_ context.Context, c *call) ([]byte, error) {
	names := "PATH HOME LANG HEARTH_RUN_UID"
	for name := range c.g.env {
		names += " " + name
	}
	if c.g.r.is("leaks-environment") {
		names += " SECRET_OF_THE_SERVER"
	}
	return json.Marshal(names)
}

func withContext(_ context.Context, c *call) ([]byte, error) {
	if c.g.r.is("no-context") {
		return []byte(`" "`), nil
	}
	return json.Marshal(c.g.uid + " " + c.id)
}
