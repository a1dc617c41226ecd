package front

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
)

// write answers with the function's output as it is, or with an envelope where
// the caller accepts one.
func write(w http.ResponseWriter, r *http.Request, answer invoke.Answer) error {
	body, contentType := answer.Output, answer.ContentType
	if contentType == "" {
		contentType = octetStreamType
	}
	if strings.Contains(r.Header.Get("Accept"), envelopeType) {
		var err error
		if body, err = json.Marshal(enclose(answer, contentType)); err != nil {
			return err
		}
		contentType = envelopeType
	}
	head := w.Header()
	head.Set(HeaderInvocationID, answer.InvocationID)
	head.Set(HeaderRunUID, answer.RunUID)
	head.Set("Content-Type", contentType)
	head.Set("Content-Length", strconv.Itoa(len(body)))
	// What a function returned is never to be guessed at by a browser.
	head.Set("X-Content-Type-Options", "nosniff")
	_, err := w.Write(body)
	return err
}

// envelope is an answer with what the plain one has no place for. Of the three
// outputs one is set: JSON as it is, other text as a string, other bytes in
// base64.
type envelope struct {
	RunUID       string            `json:"runUid"`
	InvocationID string            `json:"invocationId"`
	ContentType  string            `json:"contentType"`
	Output       json.RawMessage   `json:"output,omitempty"`
	OutputText   *string           `json:"outputText,omitempty"`
	OutputBase64 []byte            `json:"outputBase64,omitempty"`
	Outputs      map[string]string `json:"outputs"`
}

func enclose(answer invoke.Answer, contentType string) envelope {
	e := envelope{
		RunUID: answer.RunUID, InvocationID: answer.InvocationID,
		ContentType: contentType, Outputs: answer.Outputs,
	}
	if e.Outputs == nil {
		e.Outputs = map[string]string{}
	}
	switch {
	case strings.HasPrefix(contentType, jsonType) && json.Valid(answer.Output):
		e.Output = answer.Output
	case utf8.Valid(answer.Output):
		text := string(answer.Output)
		e.OutputText = &text
	default:
		e.OutputBase64 = answer.Output
	}
	return e
}
