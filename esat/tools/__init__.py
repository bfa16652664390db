"""What is done beside compiling and running: comparing, calibrating, drawing, trying rules."""
