import numpy as np


def consulta_onehot(ids, E):
    onehots = np.eye(len(E))[ids]
    return onehots, onehots @ E
