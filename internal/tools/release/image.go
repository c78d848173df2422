package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is who the image runs as. It has no name there.
const imageUser = 65532

// imageFile returns the name of the image in a release.
func (r release) imageFile() string { return fmt.Sprintf("writ_%s_image.tar", r.version()) }

// image writes an archive of OCI's layout with an image for Linux on each of programs, by processor, and returns the
// digest by which a registry will know it. It has the same as the Dockerfile's image.
func (r release) image(programs map[string]string, dir, out string) (digest v1.Hash, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range targets {
		program := programs[t.arch]
		if t.os != "linux" || program == "" {
			continue
		}
		image, err := r.imageOf(t.arch, program)
		if err != nil {
			return digest, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: t.arch}}})
	}
	if digest, err = index.Digest(); err != nil {
		return digest, err
	}
	// docker load and podman load read the name from an annotation of the one entry of index.json.
	at := filepath.Join(dir, "image")
	path, err := layout.Write(at, empty.Index)
	if err != nil {
		return digest, err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version(), "io.containerd.image.name": "writ:" + r.version(),
	})); err != nil {
		return digest, err
	}
	data, err := r.tarOf(at)
	if err != nil {
		return digest, err
	}
	return digest, create(filepath.Join(out, r.imageFile()), data, 0o644)
}

func (r release) imageOf(arch, program string) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		file
		owner int
	}{
		{file{"data/", nil, 0o700}, imageUser},
		{file{"etc/ssl/certs/ca-certificates.crt", authorities(), 0o644}, 0},
		{file{"writ", data, 0o755}, 0},
	} {
		if err := r.add(w, f.file, f.owner); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	was, err := image.ConfigFile() // it lists the layer
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: r.time}, RootFS: was.RootFS,
		Config: v1.Config{
			User: fmt.Sprintf("%d:%d", imageUser, imageUser), Entrypoint: []string{"/writ"}, Cmd: []string{"serve"},
			Env:     []string{"WRIT_DATA=/data", "WRIT_ADMIN_ADDR=:3821"},
			Volumes: map[string]struct{}{"/data": {}}, ExposedPorts: map[string]struct{}{"3820/tcp": {}, "3821/tcp": {}},
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/writ", "status", "--url", "http://127.0.0.1:3820"},
				Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 30 * time.Second, Retries: 3},
			Labels: map[string]string{"org.opencontainers.image.version": r.version(), "org.opencontainers.image.revision": r.revision,
				"org.opencontainers.image.licenses": "Apache-2.0"},
		},
	})
}

// add writes a file, or a folder, to an archive.
func (r release) add(w *tar.Writer, f file, owner int) error {
	h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: r.time, Uid: owner, Gid: owner, Format: tar.FormatPAX}
	if f.name[len(f.name)-1] == '/' {
		h.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(f.data)
	return err
}

// tarOf returns an archive of the files below dir, in the order of their names.
func (r release) tarOf(dir string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		return r.add(w, file{name, data, 0o644}, 0)
	})
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// authorities returns Mozilla's certificates. It leaves out those that are trusted for some names alone, which a file
// cannot say.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return b.Bytes()
}
