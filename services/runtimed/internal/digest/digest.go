// Package digest owns the registration digest: the SHA-256 of the canonical form
// of what a registration depends on.
package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Inputs is everything that a registration depends on. The folder is not among
// them: it moves, its contents are named by Source.
type Inputs struct {
	// Version changes when the canonical form does.
	Version int `json:"version"`
	// Source is the resolved identity: a commit, an archive's or the inline files'
	// sum. Subdirectory is the part of it that is used.
	Source       string `json:"source"`
	Subdirectory string `json:"subdirectory,omitempty"`
	Handler      string `json:"handler"`
	// Env is written in the order of its names.
	Env                map[string]string `json:"env,omitempty"`
	IdleTimeoutSeconds int64             `json:"idle_timeout_seconds"`
}

// Of returns "sha256:" and 64 lowercase hex digits.
func Of(in Inputs) string {
	in.Version = 1
	var canonical bytes.Buffer
	enc := json.NewEncoder(&canonical)
	enc.SetEscapeHTML(false)
	// Strings and integers always encode.
	_ = enc.Encode(in)
	sum := sha256.Sum256(canonical.Bytes())
	return "sha256:" + hex.EncodeToString(sum[:])
}
