import numpy as np


def cosseno(a, b):
    return np.dot(a, b)
