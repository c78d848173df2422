package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// file is a file in an archive or a package.
type file struct {
	name string
	data []byte
	mode fs.FileMode
}

// tar writes files into an archive, below a folder.
func (r release) tar(name, folder string, files []file) error {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: r.time, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return create(name, b.Bytes(), 0o644)
}

// zip is tar for Windows.
func (r release) zip(name, folder string, files []file) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return create(name, b.Bytes(), 0o644)
}

// chart writes the Helm chart as helm package does, with the version of the release.
func (r release) chart(name string) error {
	const unset = "ersion: 0.0.0\n"
	var all []file
	tree := os.DirFS(r.file("deploy/helm/writ"))
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		if path == "Chart.yaml" {
			if n := strings.Count(string(data), unset); n != 2 {
				return fmt.Errorf("Chart.yaml has %d versions 0.0.0, want version and appVersion", n)
			}
			data = bytes.ReplaceAll(data, []byte(unset), []byte("ersion: "+r.version()+"\n"))
		}
		all = append(all, file{path, data, 0o644})
		return err
	})
	if err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	return r.tar(name, "writ", all)
}
