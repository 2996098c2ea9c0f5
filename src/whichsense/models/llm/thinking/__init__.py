"""How each stage thinks: one decision a call, and the embedded encoder checks what comes back."""
