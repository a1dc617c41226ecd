//go:build linux && amd64

package process

// OpenWithout opens a driver whose containers lack some walls.
func OpenWithout(config Config, walls []string) (*Driver, error) { return openWithout(config, walls) }

// Root is the folder of the driver's state.
func (d *Driver) Root() string { return d.config.Root }
