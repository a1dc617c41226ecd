package python_test

import "testing"

func TestAnswersEcho(t *testing.T) {
	w := newWorld(t, false)
	l := w.app(t, "def handle(event):\n    print('hi')\n    return event\n")
	l.want(`{"a": [1, "ü"]}`, `{"a":[1,"ü"]}`)
	mustContain(t, l.logs.text("call-1/stdout"), "hi\n")
}
