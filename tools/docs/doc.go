// Package docs owns what is checked of the pages: that what they name is there.
package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// link is a Markdown link; what follows "#" is a place within the page.
	link = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	// named is a path as text has it: behind a space, a quote or a bracket.
	named = regexp.MustCompile("(?:^|[\\s`\"'(\\[])(?:\\./)?([A-Za-z0-9_-]+/[A-Za-z0-9_./-]*)")
)

// Pages returns the pages of a repository, relative to its root.
// Errors: those of the file system.
func Pages(root string) ([]string, error) {
	pages := []string{"README.md", "examples/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, page := range found {
			rel, err := filepath.Rel(root, page)
			if err != nil {
				return nil, err
			}
			pages = append(pages, filepath.ToSlash(rel))
		}
	}
	return pages, nil
}

// Missing returns what the text of a page names and the repository does not have:
// targets of relative links, and paths that begin with one of the repository's
// folders, where "internal/ledger" may be that of any module: the text says whose.
// Commands in bin are built, and no part of it.
// Errors: those of the file system.
func Missing(root, page, text string) ([]string, error) {
	folders, err := topFolders(root)
	if err != nil {
		return nil, err
	}
	var wanted []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") {
			wanted = append(wanted, path.Join(path.Dir(page), m[1]))
		}
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if top, _, _ := strings.Cut(m[1], "/"); folders[top] {
			wanted = append(wanted, strings.TrimRight(m[1], "./"))
		}
	}
	slices.Sort(wanted)
	return slices.DeleteFunc(slices.Compact(wanted), func(name string) bool { return there(root, name) }), nil
}

func there(root, name string) bool {
	homes := []string{""}
	if strings.HasPrefix(name, "internal/") {
		homes = append(homes, "*", "services/*")
	}
	for _, home := range homes {
		if found, err := filepath.Glob(filepath.Join(root, home, filepath.FromSlash(name))); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

func topFolders(root string) (map[string]bool, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("read repository: %w", err)
	}
	folders := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "bin" && !strings.HasPrefix(e.Name(), ".") {
			folders[e.Name()] = true
		}
	}
	return folders, nil
}
