"""Estimation from measured torques: external torques, where and how hard a robot is touched, what it carries."""

from .contact import ContactForce as ContactForce
from .contact import ContactWrench as ContactWrench
from .contact import contact_force as contact_force
from .contact import contact_wrench as contact_wrench
from .contact import touched_body as touched_body
from .observer import MomentumObserver as MomentumObserver
from .observer import external_torques as external_torques
from .observer import observe as observe
from .observer import start_observer as start_observer
from .payload import PayloadEstimate as PayloadEstimate
from .payload import observe_payload as observe_payload
from .payload import payload_regressor as payload_regressor
from .payload import start_payload as start_payload
