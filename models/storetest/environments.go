package storetest

import (
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// passing is the name of an environment that nobody uses: it is made and deleted again and again.
const passing = "passing"

// comeAndGo makes an environment that nobody uses, and deletes it, seldom without sealing it first.
func (r *run) comeAndGo(tenant models.Tenant) *engine.Command {
	if r.known.passing == 0 {
		return r.configure(&engine.Configure{Environment: &models.Environment{ID: r.id(), Tenant: tenant.Number, Name: passing, Kind: "development"}, New: true, Action: "environment.create"})
	}
	if r.chance(80) {
		r.do(r.configure(&engine.Configure{CloseEnvironment: r.known.passing, Seal: true}))
	}
	return r.configure(&engine.Configure{CloseEnvironment: r.known.passing, Action: "environment.delete"})
}
