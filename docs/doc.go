// Package docs holds the project's documents and the tests that keep them true.
//
// It promises that what can be taken from the code is taken from it: the diagram and the table of states, the table of
// configuration variables, the list of what is refused as not built; and that every link inside the project leads
// somewhere. It holds no code that runs in the product.
package docs
