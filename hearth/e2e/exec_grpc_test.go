package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A client that was written against the plain protos alone goes on to work: its
// stubs are generated from a frozen copy of them.
func TestPlainClient(t *testing.T) {
	python := interpreter(t)
	stubs := generateStubs(t, python)
	// The house's installer takes packages from a folder: nothing is fetched.
	folder := wheels(t)
	for name, value := range map[string]string{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder, "UV_NO_INDEX": "1", "UV_FIND_LINKS": folder} {
		t.Setenv(name, value)
	}
	h := workshop(t)
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "plain_client.py"), strings.TrimPrefix(h.doors["router"], "http://"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+stubs, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	passed := 0
	for line := range strings.Lines(string(out)) {
		verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if verdict == "ok" {
			passed++
		} else if verdict == "FAIL" {
			t.Error(strings.ReplaceAll(rest, " | ", "\n"))
		}
	}
	if err != nil || passed != 13 {
		t.Errorf("%d checks passed: %v\n%s\n%s", passed, err, out, h.stderr)
	}
	if code := h.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, h.stderr)
	}
	if left := processes(t, h.data); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// generateStubs makes grpcio's stubs of the frozen protos.
func generateStubs(t *testing.T, python string) string {
	t.Helper()
	install := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "grpcio==1.76.0", "grpcio-tools==1.76.0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("install grpcio: %v: %s", err, out)
	}
	folder := t.TempDir()
	plain := filepath.Join("testdata", "plain")
	generate := exec.CommandContext(t.Context(), python, "-m", "grpc_tools.protoc", "-I", plain, "--python_out", folder, "--grpc_python_out", folder,
		filepath.Join(plain, "resources.proto"), filepath.Join(plain, "proxy.proto"))
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("generate stubs: %v: %s", err, out)
	}
	return folder
}

// wheels is a folder with the one package greeter 1.0.
func wheels(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	var data bytes.Buffer
	archive := zip.NewWriter(&data)
	for path, text := range map[string]string{
		"greeter.py":                     "WORD = 'hello'\n",
		"greeter-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n",
		"greeter-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greeter-1.0.dist-info/RECORD":   "greeter.py,,\ngreeter-1.0.dist-info/METADATA,,\ngreeter-1.0.dist-info/WHEEL,,\ngreeter-1.0.dist-info/RECORD,,\n",
	} {
		w, err := archive.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "greeter-1.0-py3-none-any.whl"), data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

// grpcurl calls the plane with what reflection tells it, by a JSON call: no
// protos, no Python, no pickle.
func TestGrpcurl(t *testing.T) {
	grpcurl, err := filepath.Abs(filepath.Join("..", "..", "bin", "grpcurl"))
	if err != nil {
		t.Fatal(err)
	}
	h := workshop(t)
	router := strings.TrimPrefix(h.doors["router"], "http://")
	services, err := exec.CommandContext(t.Context(), grpcurl, "-plaintext", router, "list").CombinedOutput()
	if err != nil || !strings.Contains(string(services), "ProxyService\n") {
		t.Fatalf("%v: %s", err, services)
	}
	body := `{"source":"def add(a, b):\n    print('adding')\n    return a + b","entry":"add","args":[40,2],"kwargs":{}}`
	half := len(body) / 2
	stream := `{"request_id":"curl-1","config":{}}`
	for _, chunk := range []string{body[:half], body[half:]} {
		stream += fmt.Sprintf(`{"request_id":"curl-1","payload":%q}`, base64.StdEncoding.EncodeToString([]byte(chunk)))
	}
	logs, answer := curl(t, grpcurl, router, stream)
	if logs != "adding\n" || !sameJSON(answer, `{"ok": true, "value": 42, "output": ["adding\n"]}`) {
		t.Errorf("printed %q, answered %s", logs, answer)
	}
	refusal, err := curlCommand(t, grpcurl, router, `{"request_id":"curl-2"}`).CombinedOutput()
	if err == nil || !strings.Contains(string(refusal), "InvalidArgument") {
		t.Errorf("a bad first message: %v: %s", err, refusal)
	}
}

func curlCommand(t *testing.T, grpcurl, router, stream string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), grpcurl, "-plaintext", "-d", "@", router, "ProxyService/RequestExecution")
	cmd.Stdin = strings.NewReader(stream)
	return cmd
}

// curl returns what a call printed and answered.
func curl(t *testing.T, grpcurl, router, stream string) (logs, answer string) {
	t.Helper()
	cmd := curlCommand(t, grpcurl, router, stream)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &stderr)
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		var message struct {
			Logs    string
			Payload []byte
		}
		if err := decoder.Decode(&message); err != nil {
			t.Fatal(err)
		}
		logs, answer = logs+message.Logs, answer+string(message.Payload)
	}
	return logs, answer
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return bytes.Equal(left, right)
}
