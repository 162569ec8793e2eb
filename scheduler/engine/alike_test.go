package engine

import (
	"reflect"
	"testing"

	"nightshift/models"
)

// A class that gains a field must be told apart by it: this counts the fields that alike was written for.
func TestAlikeKnowsEveryField(t *testing.T) {
	if n := reflect.TypeFor[models.Class]().NumField(); n != 14 {
		t.Fatalf("a class has %d fields now: teach alike the new one", n)
	}
	base := models.Class{Type: "a", CPUMilli: 1, MemoryMB: 2, DiskMB: 3, GPU: 1, VRAMMB: 4, Model: "m"}
	if same := base; !alike(&base, &same) {
		t.Fatal("a class is not like itself")
	}
	for name, change := range map[string]func(*models.Class){
		"type": func(c *models.Class) { c.Type = "b" }, "tokens": func(c *models.Class) { c.Tokens = true }, "hosted": func(c *models.Class) { c.Hosted = true }, "chosen": func(c *models.Class) { c.Chosen = true }, "cpu": func(c *models.Class) { c.CPUMilli++ }, "memory": func(c *models.Class) { c.MemoryMB++ },
		"disk": func(c *models.Class) { c.DiskMB++ }, "gpu": func(c *models.Class) { c.GPU++ }, "vram": func(c *models.Class) { c.VRAMMB++ },
		"model": func(c *models.Class) { c.Model = "" }, "selector": func(c *models.Class) { c.Selector = map[string]string{"a": "b"} },
		"permissions": func(c *models.Class) { c.Permissions = []string{"p"} },
	} {
		other := base
		if change(&other); alike(&base, &other) {
			t.Errorf("classes that differ by %s are taken for one", name)
		}
	}
}
