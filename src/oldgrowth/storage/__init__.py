"""Where rows, trees and votes live during a fit: memory, spill files, checkpoints."""
