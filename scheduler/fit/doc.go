// Package fit says which workers can run which classes: what a worker lacks in principle, and whether it has room now.
//
// Cards are judged one by one: a task's vram_mb is what each of its cards must have free. A task that names vram_mb
// shares a card by VRAM, one that only names cards takes them whole.
package fit
