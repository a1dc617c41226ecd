package zygote

import "errors"

// ErrEnded is a zygote whose process is gone.
var ErrEnded = errors.New("the zygote has ended")
