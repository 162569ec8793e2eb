package models

import "testing"

func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		{`{"a":1,"b":{"c":1.50,"d":2}}`, `{"a":null,"b":{"d":null,"e":[1]}}`, `{"b":{"c":1.50,"e":[1]}}`},
		{`{"a":1}`, `[1]`, `[1]`},
		{`"text"`, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`},
		{``, `{"a":1}`, `{"a":1}`},
	} {
		got, err := MergePatch([]byte(c[0]), []byte(c[1]))
		if err != nil || string(got) != c[2] {
			t.Errorf("%s with %s is %s, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
}
