package cli

type upCmd struct{}

func (upCmd) Run() error { return nil }

type demoCmd struct{}

func (demoCmd) Run() error { return nil }
