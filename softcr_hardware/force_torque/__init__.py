"""ATI Net F/T: the wrench below the base, in SI units, judged before it is believed."""
