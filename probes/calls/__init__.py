"""Operations that can hang: child processes, deadlines, locks."""
