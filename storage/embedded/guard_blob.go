package embedded

const (
	// blobExt ends the name of a file in which Pebble keeps separated values.
	blobExt = ".blob"
	// blobMagic ends such a file.
	blobMagic = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
)

// guardBlob is a blob file. When its last write, its sync or its close fails,
// Pebble v2.1.7 closes it once more through a nil pointer, in a goroutine of its
// own, where nothing can recover. So these failures stop the store, as those of
// the log do: see guardFS. It survives the failure of an earlier write, and
// repeats the flush.
type guardBlob struct {
	guardFile
	tail []byte // what was written last, as much as blobMagic takes
}

func (f *guardBlob) Write(p []byte) (n int, err error) {
	f.tail = append(f.tail, p[max(0, len(p)-len(blobMagic)):]...)
	f.tail = f.tail[max(0, len(f.tail)-len(blobMagic)):]
	if string(f.tail) != blobMagic {
		return f.guardFile.Write(p)
	}
	f.fs.last("writing a file of values", func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

func (f *guardBlob) Sync() error {
	f.fs.last("syncing a file of values", f.File.Sync)
	return nil
}

func (f *guardBlob) SyncData() error {
	f.fs.last("syncing a file of values", f.File.SyncData)
	return nil
}

func (f *guardBlob) SyncTo(n int64) (full bool, err error) {
	f.fs.last("syncing a file of values", func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, nil
}

// Close closes the file even when the store has stopped.
func (f *guardBlob) Close() error {
	if err := f.File.Close(); err != nil {
		f.fs.health.stop("closing a file of values", err)
	}
	return nil
}
