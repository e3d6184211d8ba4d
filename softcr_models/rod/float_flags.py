"""What a compiler may do with the arithmetic of kernels, whatever their values."""

# What LLVM may do with arithmetic: fuse, reorder, divide by reciprocals, drop the sign of zero. It
# must not take for granted that numbers are finite ("nnan", "ninf", both part of "fast"): NaN says
# that a candidate's step failed.
SAFE_FLAGS = ("contract", "reassoc", "arcp", "nsz", "afn")
