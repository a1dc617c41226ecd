package runtimetest_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimetest"
)

func sample() []runtimetest.Result {
	return []runtimetest.Result{
		{ID: "FR-A-01", Level: runtimetest.Must, Protocol: runtimetest.Connect, Verdict: runtimetest.Pass, Clause: "Scope", Claim: "It works.", Took: 1500 * time.Millisecond},
		{ID: "FR-A-02", Level: runtimetest.Must, Protocol: runtimetest.Connect, Verdict: runtimetest.Fail, Clause: "Scope", Claim: "It is <exact>.", Expected: "1", Seen: "2 & more"},
		{ID: "FR-A-03", Level: runtimetest.Should, Protocol: runtimetest.GRPC, Verdict: runtimetest.Fail, Clause: "Scope", Claim: "It is kind.", Expected: "a", Seen: "b"},
		{ID: "FR-A-04", Level: runtimetest.Must, Protocol: runtimetest.GRPC, Verdict: runtimetest.Skip, Clause: "Scope", Claim: "It is there.", Seen: "no fixture"},
	}
}

func write(t *testing.T, format runtimetest.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := runtimetest.Write(&b, format, sample()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTally(t *testing.T) {
	if got, want := runtimetest.Tally(sample()), (runtimetest.Count{Pass: 1, Fail: 2, Skip: 1, FailedMust: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTable(t *testing.T) {
	text := write(t, runtimetest.Table)
	for _, want := range []string{
		"FR-A-01  MUST    connect  pass     1.5s  It works.\n",
		"FR-A-02 over connect: It is <exact>.\n  section   Scope\n  expected  1\n  saw       2 & more\n",
		"skipped 1: no fixture\n",
		"1 passed, 2 failed, 1 skipped: the target does not conform: 1 MUST failed\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestJSON(t *testing.T) {
	var report struct {
		Counts  runtimetest.Count
		Results []runtimetest.Result
	}
	if err := json.Unmarshal([]byte(write(t, runtimetest.JSON)), &report); err != nil {
		t.Fatal(err)
	}
	if report.Counts != runtimetest.Tally(sample()) || len(report.Results) != 4 || report.Results[1] != sample()[1] {
		t.Errorf("%+v", report)
	}
}

func TestJUnit(t *testing.T) {
	type testcase struct {
		Name    string    `xml:"name,attr"`
		Failure *struct{} `xml:"failure"`
		Skipped *struct {
			Message string `xml:"message,attr"`
		} `xml:"skipped"`
	}
	var report struct {
		Suites []struct {
			Name     string     `xml:"name,attr"`
			Tests    int        `xml:"tests,attr"`
			Failures int        `xml:"failures,attr"`
			Skipped  int        `xml:"skipped,attr"`
			Time     string     `xml:"time,attr"`
			Cases    []testcase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(write(t, runtimetest.JUnit)), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Suites) != 2 {
		t.Fatalf("%d suites", len(report.Suites))
	}
	connect, grpc := report.Suites[0], report.Suites[1]
	if connect.Tests != 2 || connect.Failures != 1 || connect.Skipped != 0 || connect.Time != "1.500" || connect.Cases[1].Failure == nil {
		t.Errorf("connect: %+v", connect)
	}
	if grpc.Failures != 0 || grpc.Skipped != 2 || grpc.Cases[0].Skipped.Message != "SHOULD FR-A-03" || grpc.Cases[1].Skipped.Message != "no fixture" {
		t.Errorf("grpc: %+v", grpc)
	}
	if err := runtimetest.Write(io.Discard, "yaml", nil); err == nil {
		t.Error("an unknown format was taken")
	}
}

func TestManifestsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{"language": "x", "handlers": {"ecko": "a.b", "echo": "a.c"}, "invalid": {"shape": "a"}}`: "ecko",
		`{"language": "x", "invalid": {"shape": "a"}}`:                                             "shape",
		`{"language": "x", "executions": {"hallo": {}}}`:                                           "hallo",
		`{"handlers": {}}`:                    "language is empty",
		`{"language": "x", "colour": "blue"}`: "colour",
		`{`:                                   "unexpected EOF",
	} {
		_, err := runtimetest.FromFS(fstest.MapFS{runtimetest.ManifestFile: {Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
	if _, err := runtimetest.FromFS(fstest.MapFS{}); err == nil {
		t.Error("a folder without a manifest was taken")
	}
}
