// Package forward is the Door of a replica that is not the brain.
//
// It takes a command to whoever decides: the loop of this replica, or the replica that Role names, over HTTP with a
// token for the audience "brain". It promises that a command whose answer got lost is asked again under its id, so that
// it is done once; that a claim which was parked at a brain now gone is parked again at the next one for the rest of its
// wait; and that no call outlives its deadline. It never decides, never reads the database and never forwards twice: the
// replica that receives a command answers it itself or refuses.
package forward
