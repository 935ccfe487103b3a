"""Training runs in other tools: TensorBoard, VisualDL, Weights & Biases, MLflow, tqdm, pandas.

Each is a `Tracker`; `track` reports the runs of a program to it. Their packages are imported when one is created.
"""

from fluidnb.tracking.mlflow import MLflow
from fluidnb.tracking.table import Table, frame
from fluidnb.tracking.tensorboard import TensorBoard
from fluidnb.tracking.tqdm import Tqdm
from fluidnb.tracking.tracker import Step, Tracker, track
from fluidnb.tracking.visualdl import VisualDL
from fluidnb.tracking.wandb import WandB

__all__ = ["MLflow", "Step", "Table", "TensorBoard", "Tqdm", "Tracker", "VisualDL", "WandB", "frame", "track"]
