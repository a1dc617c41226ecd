package cli

type demoCmd struct{}

func (demoCmd) Run() error { return nil }
