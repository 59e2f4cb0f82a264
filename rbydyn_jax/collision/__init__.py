"""Self-collision: exact distances between the shapes of a robot, differentiable."""

from .capsule_capsule import capsule_distance as capsule_distance
from .pair_table import PAIR_FUNCTIONS as PAIR_FUNCTIONS
from .pairing import CapsulePairs as CapsulePairs
from .pairing import pairs as pairs
from .robot import NearestPairs as NearestPairs
from .robot import capsule_distances as capsule_distances
from .robot import min_distance as min_distance
from .robot import nearest as nearest
from .robot import signed_distances as signed_distances
from .robot import smooth_min_distance as smooth_min_distance
from .witness import CapsuleDistance as CapsuleDistance
from .witness import Witness as Witness
