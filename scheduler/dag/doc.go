// Package dag holds what is known of the shape of a workflow: which task waits for which, by key.
//
// It promises to find every double and unknown key and one whole cycle, and to find the longest path, in time linear in
// tasks and edges and without recursion, so that a body of 100,000 tasks in one chain is as safe as three tasks. Keys may be
// mentioned before they are declared, so a body can be read once, as it arrives.
//
// It never knows of states, ids or the database.
package dag
