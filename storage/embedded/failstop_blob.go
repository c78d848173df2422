package embedded

const (
	// blobExt ends the name of a file in which Pebble keeps separated values.
	blobExt = ".blob"
	// blobMagic ends such a file.
	blobMagic = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
)

// failStopBlob is a blob file. When its last write, its sync or its close fails,
// Pebble v2.1.7 closes it once more through a nil pointer, in a goroutine of its own,
// which cannot be recovered. Like failures of the log, these failures therefore stop the
// store: see failStopFS. After the failure of an earlier write Pebble repeats the
// flush.
type failStopBlob struct {
	failStopFile
	tail []byte // the last bytes written, as many as blobMagic has
}

func (f *failStopBlob) Write(p []byte) (n int, err error) {
	f.tail = append(f.tail, p[max(0, len(p)-len(blobMagic)):]...)
	f.tail = f.tail[max(0, len(f.tail)-len(blobMagic)):]
	if string(f.tail) != blobMagic {
		return f.failStopFile.Write(p)
	}
	f.fs.orStop("writing a file of values", func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

func (f *failStopBlob) Sync() error {
	f.fs.orStop("syncing a file of values", f.File.Sync)
	return nil
}

func (f *failStopBlob) SyncData() error {
	f.fs.orStop("syncing a file of values", f.File.SyncData)
	return nil
}

func (f *failStopBlob) SyncTo(n int64) (full bool, err error) {
	f.fs.orStop("syncing a file of values", func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, nil
}

// Close closes the file even when the store has stopped.
func (f *failStopBlob) Close() error {
	if err := f.File.Close(); err != nil {
		f.fs.health.stop("closing a file of values", err)
	}
	return nil
}
