package runtimetest

import "time"

// Verdict is how a case ended.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip"
)

// Result is one case over one protocol.
type Result struct {
	ID       string   `json:"id"`
	Level    Level    `json:"level"`
	Protocol Protocol `json:"protocol"`
	Verdict  Verdict  `json:"verdict"`
	Clause   string   `json:"clause"`
	Claim    string   `json:"claim"`
	// Expected and Seen say why a case failed; Seen alone why it was skipped.
	Expected string        `json:"expected,omitempty"`
	Seen     string        `json:"seen,omitempty"`
	Took     time.Duration `json:"took_nanos"`
}

// Count is how many cases ended how.
type Count struct {
	Pass       int `json:"pass"`
	Fail       int `json:"fail"`
	Skip       int `json:"skip"`
	FailedMust int `json:"failed_must"`
}

// Tally counts results. A target conforms when FailedMust is 0.
func Tally(results []Result) Count {
	var c Count
	for _, r := range results {
		switch r.Verdict {
		case Pass:
			c.Pass++
		case Skip:
			c.Skip++
		case Fail:
			c.Fail++
			if r.Level == Must {
				c.FailedMust++
			}
		}
	}
	return c
}
