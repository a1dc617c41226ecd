package plan

import "encoding/json"

type jsonOp struct {
	Wall    string    `json:"wall"`
	Call    int       `json:"call"`
	Args    []jsonArg `json:"args"`
	MayFail bool      `json:"may_fail,omitempty"`
	Fork    bool      `json:"fork,omitempty"`
}

// jsonArg has exactly one field set. Bytes travel as base64.
type jsonArg struct {
	Int     *int64   `json:"int,omitempty"`
	Bytes   []byte   `json:"bytes,omitempty"`
	Table   [][]byte `json:"table,omitempty"`
	Program []byte   `json:"program,omitempty"`
	Answer  *int64   `json:"answer,omitempty"`
}

// MarshalJSON encodes the plan for an applier that makes system calls by number,
// such as Python's ctypes: an array of {wall, call, args, may_fail, fork}, where an
// argument is {int}, {bytes} (its address is passed, and it is NUL-terminated
// already where the call wants that), {table} (an array of addresses, ended by
// null), {program} (a struct sock_fprog around these bytes) or {answer} (what the op
// with that index answered).
func (p Plan) MarshalJSON() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	ops := make([]jsonOp, 0, len(p))
	for _, op := range p {
		j := jsonOp{Wall: op.Wall, Call: op.Call, MayFail: op.MayFail, Fork: op.Fork, Args: []jsonArg{}}
		for _, a := range op.Args {
			j.Args = append(j.Args, a.json())
		}
		ops = append(ops, j)
	}
	return json.Marshal(ops)
}

func (a Arg) json() jsonArg {
	switch a.kind {
	case kindBytes:
		return jsonArg{Bytes: a.bytes}
	case kindTable:
		return jsonArg{Table: a.table}
	case kindProgram:
		return jsonArg{Program: a.bytes}
	case kindAnswer:
		return jsonArg{Answer: &a.value}
	default:
		return jsonArg{Int: &a.value}
	}
}
