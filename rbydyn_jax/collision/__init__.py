"""Exact distances between the shapes of a robot, and from a world of obstacles, differentiable."""

from .capsule_capsule import capsule_distance as capsule_distance
from .field import SurfacePoints as SurfacePoints
from .field import sdf as sdf
from .filtering import sampled_pairs as sampled_pairs
from .filtering import srdf_pairs as srdf_pairs
from .obstacles import World as World
from .obstacles import box as box
from .obstacles import capsule as capsule
from .obstacles import cylinder as cylinder
from .obstacles import half_space as half_space
from .obstacles import sphere as sphere
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
from .world import WorldDistance as WorldDistance
from .world import world_contacts as world_contacts
from .world import world_distances as world_distances
