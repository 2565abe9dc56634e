// Package controllers has one reconciler a kind. Each gathers facts, asks the pure rooms, applies what
// they answer and writes the status once; what should exist and what it means is decided elsewhere.
package controllers
