// Package agent is the body of `nightshift worker`: a worker with the task
// types of package run.
//
// It promises to find out what the machine has (CPUs, memory, disk) where the
// options do not say, to keep its instance id in the data folder so that a
// restarted worker takes its own place instead of another, and to refuse to
// run twice under one name in one data folder.
//
// It never chooses its own work and never writes a secret down.
package agent
