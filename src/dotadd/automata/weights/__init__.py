"""W', the weight vector of a rational kernel's SVM, as an automaton in several forms."""
