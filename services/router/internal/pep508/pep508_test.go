package pep508_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/services/router/internal/pep508"
)

func TestParse(t *testing.T) {
	for entry, want := range map[string]string{
		"A":                               "a",
		"3":                               "3",
		"name":                            "name",
		"  Zope.Interface__x \t":          "zope-interface-x",
		"name<=1":                         "name<=1",
		"name >= 1.0.0":                   "name>=1",
		"name>=3,<2":                      "name<2,>=3",
		"name(>=1.2, !=1.5.*)":            "name!=1.5.*,>=1.2",
		"name()":                          "name",
		"name [ fred , Bar_x,fred ]~=1.0": "name[bar-x,fred]~=1.0",
		"name[]":                          "name",
		"name==1.0.0.*":                   "name==1.0.0.*",
		"name~=2.0.0":                     "name~=2.0.0",
		"name == 1!2.0-RC.1":              "name==1!2rc1",
		"name==1.0-1":                     "name==1.post1",
		"name==v1.0.dev":                  "name==1.dev0",
		"name==1.0+Ubuntu-1":              "name==1+ubuntu.1",
		"name===any~thing":                "name===any~thing",
		"name; python_version<'3.9'":      `name ; python_version < "3.9"`,
		"name>=1;os_name=='a' or os_name=='b' and extra == 'x'":           `name>=1 ; os_name == "a" or os_name == "b" and extra == "x"`,
		"name;(sys_platform == 'x') and 'linux' not  in platform_version": `name ; (sys_platform == "x") and "linux" not in platform_version`,
		`name; os_name == 'a "quoted" b'`:                                 `name ; os_name == 'a "quoted" b'`,
		"name;sys.platform=='linux2'":                                     `name ; sys.platform == "linux2"`,
		"name; 'in' in platform_machine":                                  `name ; "in" in platform_machine`,
	} {
		got, err := pep508.Parse(entry)
		if err != nil {
			t.Errorf("%q: %v", entry, err)
			continue
		}
		if got.String() != want {
			t.Errorf("%q became %q, want %q", entry, got, want)
		}
		again, err := pep508.Parse(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%q is not read back: %q, %v", got, again, err)
		}
	}
}

func TestRefuse(t *testing.T) {
	for entry, want := range map[string]string{
		"":                                "empty",
		" \t":                             "empty",
		"-r requirements.txt":             "options",
		"--index-url=http://x numpy":      "options",
		"numpy --pre":                     "end of the entry",
		"name @ https://x/y.whl":          "URLs",
		"name@file:///x":                  "URLs",
		"git+https://x/y":                 "URLs",
		"name @ nowhere":                  "URLs",
		"./local":                         "paths",
		"../x":                            "paths",
		"/abs/x":                          "paths",
		`C:\x`:                            "paths",
		"~/x":                             "paths",
		"numpy-1.0-py3-none-any.whl":      "files",
		"numpy-1.0.tar.gz":                "files",
		"name\n--pre":                     "printable",
		"näme":                            "printable",
		"name # why":                      "end of the entry",
		"name$":                           "end of the entry",
		"_name":                           "distribution's name",
		"name-":                           "end of the entry",
		"name>=":                          "a version after",
		"name>=1,":                        "version operator",
		"name,>=1":                        "end of the entry",
		"name=1":                          "end of the entry",
		"name=>1":                         "end of the entry",
		"name 1.0":                        "end of the entry",
		"name>=1 <2":                      "end of the entry",
		"name>=1.*":                       ".* goes with",
		"name==1.0.dev1.*":                ".* follows neither",
		"name==1.0+x.*":                   ".* follows neither",
		"name~=1":                         "two parts",
		"name>=1.0+local":                 "local version",
		"name==one":                       "no version",
		"name==1..2":                      "no version",
		"name==*":                         "no version",
		"name(>=1":                        `")"`,
		"name>=1)":                        "end of the entry",
		"name[a":                          `"," or "]"`,
		"name[a b]":                       `"," or "]"`,
		"name[a,]":                        "name of an extra",
		"name[,a]":                        "name of an extra",
		"name;":                           "variable or a string",
		"name; python_version":            "comparison",
		"name; python_version > ":         "variable or a string",
		"name; python_version not '3'":    `"in" after "not"`,
		"name; python_versio > '3'":       "no marker variable",
		"name; 'a' == 'b'":                "two strings",
		"name; os_name == 'a":             "not closed",
		"name; (os_name == 'a'":           `")"`,
		"name; os_name == 'a' and":        "variable or a string",
		"name; os_name == 'a' xor x":      "end of the entry",
		"name; os_name == 'a' android":    "end of the entry",
		`name; os_name == 'a\'`:           "backslash",
		"name;" + strings.Repeat("(", 99): "parentheses",
	} {
		_, err := pep508.Parse(entry)
		var problem *pep508.Error
		if !errors.As(err, &problem) || problem.Entry != entry || !strings.Contains(problem.Problem, want) {
			t.Errorf("%q: %v, want %q", entry, err, want)
		}
	}
}

// Each version is less than the next: PEP 440's own order.
func TestVersionOrder(t *testing.T) {
	order := []string{
		"0.9", "1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456",
		"1.0b2", "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0+abc.5",
		"1.0+abc.7", "1.0+5", "1.0+12", "1.0.post456.dev34", "1.0.post456", "1.0.15", "1.1.dev1", "1.10",
		"99999999999999999999999", "1!0.1",
	}
	for i, a := range order {
		for j, b := range order {
			va, ok := pep508.ParseVersion(a)
			vb, ok2 := pep508.ParseVersion(b)
			if !ok || !ok2 {
				t.Fatalf("%s or %s is not read", a, b)
			}
			if got, want := sign(va.Compare(vb)), sign(i-j); got != want {
				t.Errorf("%s against %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		spec, version string
		want          bool
	}{
		{"==1.0", "1.0.0", true}, {"==1.0", "1.0+local", true}, {"==1.0+a", "1.0", false}, {"==1.0+a", "1+A", true},
		{"==1.*", "1.9", true}, {"==1.*", "1.0rc1", true}, {"==1.0.*", "1", true}, {"==1.1.*", "1.10", false},
		{"!=1.*", "1.9", false}, {"!=1.0", "1.1", true}, {"~=2.2", "2.9", true}, {"~=2.2", "3.0", false},
		{"~=1.4.5", "1.4.9", true}, {"~=1.4.5", "1.5", false}, {"~=1.4.5", "1.4.4", false},
		{">1.7", "1.7.0.post1", false}, {">1.7", "1.7.1", true}, {">1.7.post2", "1.7.post3", true}, {">1.7", "1.7+x", false},
		{"<2.0", "2.0rc1", false}, {"<2.0rc2", "2.0rc1", true}, {"<2.0", "1.9rc1", true}, {"<=2", "2.0+x", true},
		{">=1.0", "1.0.dev1", false}, {"===1.0", "1.0", true}, {"===1.0", "1.0.0", false}, {"==1!1", "1", false},
	} {
		r, err := pep508.Parse("n" + tc.spec)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := pep508.ParseVersion(tc.version)
		if !ok {
			t.Fatal(tc.version)
		}
		if got := r.Specifiers[0].Match(v); got != tc.want {
			t.Errorf("%s with %s: %v", tc.spec, tc.version, got)
		}
	}
}

func TestResolve(t *testing.T) {
	base, err := pep508.ParseBase(map[string]string{"NumPy": "1.26.4", "torch": "2.3.0rc1", "ruamel_yaml": "0.18"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		entries []string
		want    []string
		problem string
	}{
		{"joined", []string{"Foo_Bar>=1.0", "foo-bar >= 1"}, []string{"foo-bar>=1"}, ""},
		{"order kept", []string{"b", "a", "B"}, []string{"b", "a"}, ""},
		{"extras joined", []string{"x[b]", "x[a]"}, []string{"x[a,b]"}, ""},
		{"specifiers differ", []string{"foo>=1", "foo>=2"}, nil, `foo is asked for as "foo>=1" too`},
		{"one is bare", []string{"foo", "foo>=2"}, nil, "too"},
		{"markers differ", []string{"foo;os_name=='a'", "foo"}, nil, "too"},
		{"carried", []string{"numpy>=1.20", "Ruamel.Yaml"}, nil, ""},
		{"carried under a marker", []string{"numpy>=1; python_version>'3'"}, nil, ""},
		{"too old", []string{"numpy>=2"}, []string{"numpy>=2"}, ""},
		{"extras stay", []string{"numpy[x]"}, []string{"numpy[x]"}, ""},
		{"a pre-release does not fit", []string{"torch"}, []string{"torch"}, ""},
		{"unless asked for", []string{"torch>=2.3rc1"}, nil, ""},
		{"broken", []string{"ok", "-e ."}, nil, `"-e ."`},
	} {
		requirements, err := pep508.Resolve(tc.entries)
		if tc.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := pep508.Without(requirements, base); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if _, err := pep508.ParseBase(map[string]string{"a": "x"}); err == nil {
		t.Error("a base with a version that is none was taken")
	}
}

// Whatever is taken is one line without option, path or URL, and is read back.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a", "a[b]>=1,<2; os_name == 'x' and (extra != 'y')", "a @ b", "a===1/2", "-a", "a(==1.*)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		r, err := pep508.Parse(entry)
		if err != nil {
			return
		}
		text := r.String()
		again, err := pep508.Parse(text)
		if err != nil || again.String() != text {
			t.Fatalf("%q became %q, then %q, %v", entry, text, again, err)
		}
		head, _, _ := strings.Cut(text, ";")
		if strings.HasPrefix(text, "-") || strings.ContainsAny(head, "/\\ \n@") && strings.TrimRight(head, " ") != strings.ReplaceAll(head, " ", "") {
			t.Fatalf("%q became %q", entry, text)
		}
	})
}
