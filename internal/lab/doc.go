// Package lab holds what the project is tested and measured with; no program
// that people install depends on it.
//
// The package itself has only tests of the whole module: the arrows between
// packages, and, with the build tag further, checks against other programs.
// The generator of captures is pcapgen, its command and the harness that
// measures decoding lie under cmd.
package lab
