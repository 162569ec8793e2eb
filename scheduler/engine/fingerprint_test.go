package engine

import (
	"strings"
	"testing"

	"nightshift/models"
)

const goStack = `goroutine 7 [running]:
runtime/debug.Stack()
	/usr/lib/go/src/runtime/debug/stack.go:26 +0x5e
example/workers.(*Worker).guarded.func1()
	/build/workers/handle.go:87 +0x3f
panic({0x9e0a20?, 0xc0001b6018?})
	/usr/lib/go/src/runtime/panic.go:787 +0x132
runtime.goPanicIndex(0x3, 0x2)
	/usr/lib/go/src/runtime/panic.go:115 +0x74
main.(*store).save(0xc000012345, {0x1, 0x2})
	/build/main.go:17 +0x1d
main.main()
	/build/main.go:9 +0x1d

goroutine 8 [select]:
main.wait(0xc0000100c0)
	/build/wait.go:4 +0x1d`

const pythonStack = `Traceback (most recent call last):
  File "/srv/a/run.py", line 3, in <module>
    load("x")
  File "/srv/a/load.py", line 20, in parse
    return json.loads(text)
           ~~~~~~~~~~^^^^^^
ValueError: line 7`

const nodeStack = `Error: connect 10.0.0.7:443
    at Socket.connect (/app/dist/net.js:12:3)
    at async run (/app/dist/run.js:4:5)`

const javaStack = `java.lang.IllegalStateException: order 17
	at com.example.Orders.close(Orders.java:112)
	at com.example.Main.main(Main.java:5)`

// Two stacks of one cause have the same frame, whatever machine, build and arguments they come from; another function has another.
func TestTheTopFrameOfAStackIsWhereItHappened(t *testing.T) {
	for _, c := range []struct{ name, stack, want string }{
		{"none", "", ""},
		{"go", goStack, "main.(*store).save"},
		{"go on another machine", strings.NewReplacer("goroutine 7", "goroutine 12345", "/build/", "/home/ci/", "0xc000012345", "0xc0000aaaaa", ":17", ":18").Replace(goStack), "main.(*store).save"},
		{"go, panicked anew", strings.Replace(goStack, "runtime.goPanicIndex", "main.tidy(0x1)\n\t/build/tidy.go:3\npanic({0x1, 0x2})\n\t/panic.go:787\nruntime.goPanicIndex", 1), "main.(*store).save"},
		{"go, no panic", "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/stack.go:26\nmain.fail(...)\n\t/x.go:1\nmain.main()\n\t/x.go:9", "main.fail"},
		{"python", pythonStack, "load.py parse"},
		{"python elsewhere", strings.NewReplacer("/srv/a/", "/opt/", "20", "21", "line 7", "line 8").Replace(pythonStack), "load.py parse"},
		{"python, of another", pythonStack + "\n\nDuring handling of the above exception, another exception occurred:\n\n" + strings.ReplaceAll(pythonStack, "parse", "tell"), "load.py tell"},
		{"node", nodeStack, "Socket.connect"},
		{"node, nameless", "Error: x\n    at /app/dist/net.js:12:3", "net.js"},
		{"java", javaStack, "com.example.Orders.close"},
		{"one line", "at chunk.go:88", "chunk.go"},
		{"one line, other", "chunk.go:88", "chunk.go"},
		{"windows", "at C:\\app\\net.js:1:2\r\nat x", "net.js"},
		{"ruby", "parse.rb:12:in `load'\nmain.rb:3:in `<main>'", "· ·"},
		{"cut off", "goroutine 7 [running]:", "goroutine · [running]:"},
	} {
		if got := topFrame(c.stack); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAMessageLosesWhatDiffers(t *testing.T) {
	for message, want := range map[string]string{
		"timed out after 30 s":                        "timed out after · s",
		`cannot open "report.pdf"`:                    "cannot open ·",
		`cannot open "my big report of may.pdf"`:      "cannot open ·",
		"No such file or directory: 'a b c d.txt'":    "No such file or directory: ·",
		"open /var/lib/x: no such file":               "open · no such file",
		"it can't be, for they don't say":             "it · be, for they · say",
		"the model `large one` has no `key` for that": "the model · has no · for that",
		`field name="first and last" is empty`:        "field name=· is empty",
		`an odd " quote`:                              "an odd · quote",
	} {
		if got := normalise(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// What died of the same has one fingerprint; each of the four things it is made of parts what did not.
func TestFingerprintsPartCauses(t *testing.T) {
	of := func(typ, class, message, stack string) models.ID {
		return fingerprint(typ, &models.TaskError{Class: class, Message: message, Stack: stack})
	}
	first := of("work", "internal", "panic: index out of range [3]", goStack)
	if of("work", "internal", "panic: index out of range [5]", strings.ReplaceAll(goStack, "0xc000012345", "0xc0000aaaaa")) != first {
		t.Error("two failures of one cause have two fingerprints")
	}
	for name, other := range map[string]models.ID{
		"type":    of("other", "internal", "panic: index out of range [3]", goStack),
		"class":   of("work", "timeout", "panic: index out of range [3]", goStack),
		"message": of("work", "internal", "panic: nil map", goStack),
		"frame":   of("work", "internal", "panic: index out of range [3]", strings.ReplaceAll(goStack, "save", "load")),
	} {
		if other == first {
			t.Errorf("another %s has the same fingerprint", name)
		}
	}
}
