package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// formats are the packages for Linux. The completions of zsh are elsewhere on each.
var formats = []struct{ name, zsh string }{
	{"deb", "/usr/share/zsh/vendor-completions/_writ"},
	{"rpm", "/usr/share/zsh/site-functions/_writ"},
}

// packages writes a package of each format for Linux on arch into out. Its files are staged in dir.
func (r release) packages(arch, program string, beside []file, dir, out string) error {
	for _, f := range formats {
		contents, err := r.contents(program, beside, f.zsh, filepath.Join(dir, arch+"-"+f.name))
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "writ", Arch: arch, Platform: "linux", Version: r.tag, MTime: r.time, Section: "admin", Priority: "optional",
			Maintainer: "The authors of writ", License: "Apache-2.0", DisableGlobbing: true,
			Description: "writ decides, before it happens, whether an automated agent's action may proceed",
			Overridables: nfpm.Overridables{
				Contents: contents, Depends: map[string][]string{"deb": {"passwd"}, "rpm": {"shadow-utils"}}[f.name],
				Suggests: []string{"systemd"}, RPM: nfpm.RPM{BuildHost: "localhost", Summary: "Decides what automated agents may do"},
				Scripts: nfpm.Scripts{
					PostInstall: r.file("deploy/package/postinstall"),
					PreRemove:   r.file("deploy/package/preremove"), PostRemove: r.file("deploy/package/postremove"),
				},
			},
		})
		if err := nfpm.PrepareForPackager(info, f.name); err != nil {
			return fmt.Errorf("preparing the %s: %w", f.name, err)
		}
		packager, err := nfpm.Get(f.name)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := packager.Package(info, &b); err != nil {
			return fmt.Errorf("making the %s: %w", f.name, err)
		}
		if err := create(filepath.Join(out, packager.ConventionalFileName(info)), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r release) file(name string) string { return filepath.Join(r.root, name) }

// contents returns the files of a package. Files that are not in the tree are written below dir first.
func (r release) contents(program string, beside []file, zsh, dir string) (all files.Contents, err error) {
	add := func(source, destination, kind string, mode fs.FileMode) {
		all = append(all, &files.Content{Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}})
	}
	add(program, "/usr/bin/writ", files.TypeFile, 0o755)
	add(r.file("deploy/package/writ.service"), "/usr/lib/systemd/system/writ.service", files.TypeFile, 0o644)
	add(r.file("deploy/package/sysusers.conf"), "/usr/lib/sysusers.d/writ.conf", files.TypeFile, 0o644)
	add("", "/etc/writ", files.TypeDir, 0o750)
	add(r.file("deploy/package/writ.yaml"), "/etc/writ/writ.yaml", files.TypeConfigNoReplace, 0o640)
	places := map[string]string{
		"LICENSE": "/usr/share/doc/writ/copyright", "licenses.md": "/usr/share/doc/writ/licenses.md",
		"completion/writ.bash": "/usr/share/bash-completion/completions/writ", "completion/_writ": zsh,
		"completion/writ.fish": "/usr/share/fish/vendor_completions.d/writ.fish",
	}
	for _, f := range beside {
		destination, data := places[f.name], f.data
		if page, ok := strings.CutPrefix(f.name, "man/"); ok {
			destination = "/usr/share/man/man1/" + page + ".gz"
			if data, err = zipped(data); err != nil {
				return nil, err
			}
		}
		if destination == "" {
			return nil, fmt.Errorf("packages have no place for %s", f.name)
		}
		staged := filepath.Join(dir, path.Base(destination))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := create(staged, data, 0o644); err != nil {
			return nil, err
		}
		add(staged, destination, files.TypeFile, 0o644)
	}
	return all, nil
}

func zipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
