package sandbox

// SystemBinds are the folders and files of the host that programs of its
// distribution need, read-only: libraries, tools, certificates, the time zone. An
// interpreter that is installed elsewhere needs binds of its own, for its prefix and
// its base prefix.
func SystemBinds() []Bind {
	paths := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/mime.types",
	}
	binds := make([]Bind, 0, len(paths))
	for _, path := range paths {
		binds = append(binds, Bind{Source: path, Optional: true})
	}
	return binds
}
