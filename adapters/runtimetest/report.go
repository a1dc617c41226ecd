package runtimetest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Format is how results are written.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	JUnit Format = "junit"
)

// Write writes the results of a run.
func Write(w io.Writer, format Format, results []Result) error {
	switch format {
	case Table:
		return writeTable(w, results)
	case JSON:
		return writeJSON(w, results)
	case JUnit:
		return writeJUnit(w, results)
	default:
		return fmt.Errorf("format %q: use table, json or junit", format)
	}
}

func writeTable(w io.Writer, results []Result) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "CASE\tLEVEL\tOVER\tVERDICT\tTIME\tCLAIM")
	for _, r := range results {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Level, r.Protocol, r.Verdict, rounded(r.Took), r.Claim)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Verdict == Fail {
			fmt.Fprintf(w, "\n%s over %s: %s\n  section   %s\n  expected  %s\n  saw       %s\n", r.ID, r.Protocol, r.Claim, r.Clause, r.Expected, r.Seen)
		}
	}
	skipped := map[string]int{}
	var order []string
	for _, r := range results {
		if r.Verdict == Skip {
			if skipped[r.Seen]++; skipped[r.Seen] == 1 {
				order = append(order, r.Seen)
			}
		}
	}
	for _, why := range order {
		fmt.Fprintf(w, "\nskipped %d: %s", skipped[why], why)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", Summary(results))
	return err
}

// Summary is the outcome in one line.
func Summary(results []Result) string {
	c := Tally(results)
	outcome := "the target conforms"
	if c.FailedMust > 0 {
		outcome = fmt.Sprintf("the target does not conform: %d MUST failed", c.FailedMust)
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped: %s", c.Pass, c.Fail, c.Skip, outcome)
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func writeJSON(w io.Writer, results []Result) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Summary string   `json:"summary"`
		Counts  Count    `json:"counts"`
		Results []Result `json:"results"`
	}{Summary(results), Tally(results), results})
}

// JUnit's XML, as the common readers take it: a test suite for each protocol. A
// failed SHOULD is a skipped test with its reason, since the format knows no
// weights and a build must not break on it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Seconds  string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Seconds string    `xml:"time,attr"`
		Failure *junitWhy `xml:"failure,omitempty"`
		Skipped *junitWhy `xml:"skipped,omitempty"`
	}
	junitWhy struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(w io.Writer, results []Result) error {
	var out junitSuites
	var took time.Duration
	for _, r := range results {
		name := "runtime contract over " + string(r.Protocol)
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != name {
			out.Suites = append(out.Suites, junitSuite{Name: name})
			took = 0
		}
		s := &out.Suites[len(out.Suites)-1]
		took += r.Took
		s.add(r)
		s.Seconds = seconds(took)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (s *junitSuite) add(r Result) {
	c := junitCase{Class: r.Clause, Name: r.ID + " " + r.Claim, Seconds: seconds(r.Took)}
	why := &junitWhy{Message: r.Seen}
	if r.Verdict == Fail {
		why = &junitWhy{Message: fmt.Sprintf("%s %s", r.Level, r.ID), Text: fmt.Sprintf("expected %s\nsaw %s", r.Expected, r.Seen)}
	}
	switch {
	case r.Verdict == Fail && r.Level == Must:
		c.Failure = why
		s.Failures++
	case r.Verdict != Pass:
		c.Skipped = why
		s.Skipped++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
