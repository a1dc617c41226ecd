// Command protoimports writes the .proto files that ours import, printed from the
// descriptors that the Go modules carry, into the folder that it is given. The
// schema registry is not reachable from a build machine, so buf reads these.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/jhump/protoreflect/v2/protoprint"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: protoimports FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], validate.File_buf_validate_validate_proto); err != nil {
		fmt.Fprintln(os.Stderr, "protoimports:", err)
		os.Exit(1)
	}
}

// write prints each file beneath folder under its import path.
func write(folder string, files ...protoreflect.FileDescriptor) error {
	printer := protoprint.Printer{}
	for _, file := range files {
		text, err := printer.PrintProtoToString(file)
		if err != nil {
			return fmt.Errorf("print %s: %w", file.Path(), err)
		}
		path := filepath.Join(folder, file.Path())
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
