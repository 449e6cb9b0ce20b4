import numpy as np


def cosseno(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
