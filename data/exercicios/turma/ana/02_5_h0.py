def h0(wte, wpe, ids):
    return wte[ids] + wpe[1 : len(ids) + 1]
