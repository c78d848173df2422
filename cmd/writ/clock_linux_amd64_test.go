package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// advanceClock makes this process read a clock that differs from the system's by some time. Go
// reads the clock with the function __vdso_clock_gettime, which the kernel maps into every
// process. advanceClock overwrites this function: it makes the system call and then, only for
// CLOCK_REALTIME, adds the time. So the whole program has that clock, with all its libraries.
// In all other respects it is the program that is shipped.
func advanceClock(by time.Duration) error {
	code, err := vdso()
	if err != nil {
		return err
	}
	symbols, err := vdsoFunctions(code)
	if err != nil {
		return err
	}
	entry, room := symbols["__vdso_clock_gettime"], symbols["__vdso_gettimeofday"] // Go does not call the second
	stub := []byte{
		0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 0x07, // jnz past the addition
		0x48, 0x81, 0x06, 0, 0, 0, 0, // add qword [rsi], seconds
		0xc3, // ret
	}
	binary.LittleEndian.PutUint32(stub[14:], uint32(int32(by/time.Second))) //nolint:gosec // a minute
	if entry.Value == 0 || entry.Value%8 != 0 || room.Size < uint64(len(stub)) {
		return fmt.Errorf("the vDSO has other functions: %v, %v", entry, room)
	}
	if err := syscall.Mprotect(code, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		return fmt.Errorf("changing the vDSO: %w", err)
	}
	copy(code[room.Value:], stub)
	// Another thread may read the clock at this moment, so the jump is written in one store.
	var jump [8]byte
	copy(jump[:], code[entry.Value:])
	jump[0] = 0xe9 // jmp, relative to the next instruction
	binary.LittleEndian.PutUint32(jump[1:], uint32(room.Value-entry.Value-5))
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&code[entry.Value])), binary.LittleEndian.Uint64(jump[:]))
	return nil
}

// vdso returns the memory of the vDSO.
func vdso() ([]byte, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(maps) {
		var from, to uintptr
		if !bytes.Contains(line, []byte("[vdso]")) {
			continue
		}
		if _, err := fmt.Sscanf(string(line), "%x-%x", &from, &to); err != nil {
			return nil, err
		}
		return unsafe.Slice(*(**byte)(unsafe.Pointer(&from)), to-from), nil
	}
	return nil, errors.New("the process has no vDSO")
}

// vdsoFunctions returns the functions of the vDSO by name.
func vdsoFunctions(code []byte) (map[string]elf.Symbol, error) {
	file, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return nil, err
	}
	all, err := file.DynamicSymbols()
	functions := make(map[string]elf.Symbol)
	for _, s := range all {
		functions[s.Name] = s
	}
	return functions, err
}
