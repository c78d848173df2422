package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestGoInstall installs the program by go install PATH@VERSION from a module proxy that is a folder. What the module
// needs comes from the cache of modules, and the program says its version.
func TestGoInstall(t *testing.T) {
	r := soak(t, t.TempDir(), "v0.0.1")
	proxy := t.TempDir()
	at := filepath.Join(proxy, "writ.example/writ/@v")
	write(t, filepath.Join(at, "list"), r.tag+"\n")
	info, err := json.Marshal(map[string]any{"Version": r.tag, "Time": r.time})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, r.tag+".info"), string(info))
	write(t, filepath.Join(at, r.tag+".mod"), read(t, filepath.Join(r.root, "go.mod")))
	archive, err := os.Create(filepath.Join(at, r.tag+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromVCS(archive, module.Version{Path: "writ.example/writ", Version: r.tag}, r.root, r.revision, ""); err != nil {
		t.Fatal(err)
	}

	cache, err := output(exec.Command("go", "env", "GOMODCACHE"))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	cmd := exec.Command("go", "install", "writ.example/writ/cmd/writ@"+r.tag)
	cmd.Dir = bin // no module is around it
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache/download")+",off")
	if _, err := output(cmd); err != nil {
		t.Fatal(err)
	}
	said, err := output(exec.Command(filepath.Join(bin, "writ"), "version"))
	if err != nil || !strings.HasPrefix(said, "writ "+r.tag+", ") {
		t.Errorf("writ version prints %q, %v, want %s", said, err, r.tag)
	}
}
