package registration

type row struct {
	to      Phase
	effects []Effect
}

func to(phase Phase, effects ...Effect) row { return row{phase, effects} }

// table holds every transition. What is not in it is refused.
var table = map[Phase]map[Kind]row{
	Registering: {
		Loaded:        to(Ready, AnswerRegister),
		LoadFailed:    to(Failed, AnswerRegister),
		LoadInvalid:   to(Gone, Release, AnswerRegister),
		Unregister:    to(Closing, CancelLoad, AnswerRegister),
		UnregisterNow: to(Closing, CancelLoad, AnswerRegister),
		Supersede:     to(Closing, CancelLoad, AnswerRegister),
		Stop:          to(Closing, CancelLoad, AnswerRegister),
	},
	Ready: {
		Invoke:        to(Busy, StartInvocation),
		Unregister:    to(Closing, Close),
		UnregisterNow: to(Closing, Close),
		Supersede:     to(Closing, Close),
		Stop:          to(Closing, Close),
	},
	Busy: {
		Ended:         to(Ready),
		Lost:          to(Failed),
		Unregister:    to(Draining, StartDrain),
		UnregisterNow: to(Closing, CancelInvocation),
		Supersede:     to(Closing, CancelInvocation),
		Stop:          to(Closing, CancelInvocation),
	},
	Draining: {
		Ended:         to(Closing, StopDrain, Close),
		Lost:          to(Closing, StopDrain, Close),
		DrainDeadline: to(Closing, CancelInvocation),
		Unregister:    to(Draining),
		UnregisterNow: to(Closing, StopDrain, CancelInvocation),
		Supersede:     to(Closing, StopDrain, CancelInvocation),
		Stop:          to(Closing, StopDrain, CancelInvocation),
	},
	Failed: {
		Unregister:    to(Closing, Close),
		UnregisterNow: to(Closing, Close),
		Supersede:     to(Closing, Close),
		Stop:          to(Closing, Close),
	},
	Closing: {
		Loaded:        to(Closing, Close),
		LoadFailed:    to(Closing, Close),
		LoadInvalid:   to(Closing, Close),
		Ended:         to(Closing, Close),
		Lost:          to(Closing, Close),
		DrainDeadline: to(Closing),
		Unregister:    to(Closing),
		UnregisterNow: to(Closing),
		Supersede:     to(Closing),
		Stop:          to(Closing),
		Closed:        to(Gone, Release),
	},
}
